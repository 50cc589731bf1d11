// Package idempotency answers a repeated HTTP request with the answer that the first one got, instead of doing the work
// again. It follows the IETF draft of the Idempotency-Key header field, draft-ietf-httpapi-idempotency-key-header-07.
//
// There are three ways to use it. The best for new code is [Keys.Handle]: a function that is given a transaction and
// returns an [Answer]; key, effect and answer are one commit, and a crash at any moment leaves all or nothing. A handler that
// has its own transaction calls [Keys.Complete] in it, behind [Keys.Middleware]. Any other handler behind Keys.Middleware has
// its response stored when it returns; after a crash between its effect and that moment, a retry repeats the effect.
//
// Keys are kept by a [Store]; store/memory and store/postgres have one. Whoever writes another proves it with
// idempotencytest.Run.
package idempotency
