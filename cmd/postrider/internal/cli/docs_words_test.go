package cli

import (
	"path"
	"regexp"
	"strings"
)

var (
	substitution = regexp.MustCompile(`\$\(([^()]*)\)`)
	assignment   = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*=`)
)

// commandsOf returns the words behind "postrider" of each command line in a piece of shell script. It knows as much of the
// language as the pages use: quotes, comments, lists and pipes, redirections, and substitutions.
func commandsOf(script string) [][]string {
	var found [][]string
	for _, m := range substitution.FindAllStringSubmatch(script, -1) {
		found = append(found, commandsOf(m[1])...)
	}
	for _, words := range simpleCommands(substitution.ReplaceAllString(script, "SUBSTITUTED")) {
		for len(words) > 0 && assignment.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && path.Base(words[0]) == "postrider" {
			found = append(found, words[1:])
		}
	}
	return found
}

// simpleCommands splits a script into commands, and those into words.
func simpleCommands(script string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	inWord, redirected := false, false
	endWord := func() {
		if inWord && !redirected {
			words = append(words, word.String())
		}
		if inWord {
			redirected = false
		}
		inWord = false
		word.Reset()
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for i := 0; i < len(script); i++ {
		switch c := script[i]; c {
		case '\\':
			i++
			if i < len(script) && script[i] != '\n' {
				word.WriteByte(script[i])
				inWord = true
			}
		case '\'', '"':
			inWord = true
			for i++; i < len(script) && script[i] != c; i++ {
				if c == '"' && script[i] == '\\' && i+1 < len(script) {
					i++
				}
				word.WriteByte(script[i])
			}
		case '#':
			if inWord {
				word.WriteByte(c)
				continue
			}
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case ' ', '\t':
			endWord()
		case '\n', ';', '|', '&', '(', ')':
			endCommand()
		case '<', '>':
			endWord()
			redirected = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	endCommand()
	return commands
}
