// Package failures tests failing messages at full size on real servers: no message is lost, a
// failing message blocks only its own key, and operators can repair everything.
package failures
