// Package idempotency answers a repeated HTTP request with the stored answer of the first one and
// does not run its handler again. It follows the IETF draft of the Idempotency-Key header field,
// draft-ietf-httpapi-idempotency-key-header-07.
//
// There are three ways to use it:
//
//   - [Keys.Handle] is best for new code. The handler is a function that receives a transaction and
//     returns an [Answer]. Key, effect and answer are one commit: a crash leaves all or nothing.
//   - A handler that opens its own transaction runs behind [Keys.Middleware] and calls
//     [Keys.Complete] in that transaction.
//   - Any other handler runs behind [Keys.Middleware], which stores the response when the handler
//     returns. After a crash between the effect and that moment, a retry repeats the effect.
//
// A [Store] keeps the keys; store/memory and store/postgres have one. Test another implementation
// with idempotencytest.Run.
package idempotency
