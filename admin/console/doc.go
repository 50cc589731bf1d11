// Package console implements a web console for operators. It shows what is late, what has failed
// and why, and the history of each message, and offers the actions to repair it. It is an
// [http.Handler] that can be mounted under any prefix. It embeds its pages and loads nothing from
// other hosts. The command serves it; see "postrider relay --help".
package console
