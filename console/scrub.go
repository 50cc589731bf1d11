package console

import "regexp"

var (
	urlPassword = regexp.MustCompile(`(://[^:@/\s]*:)[^\s"]*@`)
	kvPassword  = regexp.MustCompile(`(?i)((?:password|passwd|secret|token)\s*=\s*)('(?:[^'\\]|\\.)*'|"[^"]*"|[^\s&'"` + "`" + `,;]+)`)
)

// scrub takes passwords out of a text that may quote an address.
func scrub(text string) string {
	text = urlPassword.ReplaceAllString(text, "${1}xxxxx@")
	return kvPassword.ReplaceAllString(text, "${1}xxxxx")
}
