// Package console is a web console for operators: what is late, what has failed and why, the whole way of a message, and the
// actions that help. It is an [http.Handler] that can be mounted under any prefix, and holds its pages itself: nothing is
// loaded from another host. The daemon serves it; see "postrider relay --help".
package console
