package postrider

// Middleware wraps a handler. Package broker/middleware has common ones; [Observe] counts, times and traces.
type Middleware func(next Handler) Handler
