package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// block is a fenced code block of a page.
type block struct {
	page     string // path from the top folder
	line     int    // of its first line of text, from 1
	language string
	text     string            // without the fence's indentation; ends with a line break
	notes    map[string]string // comments above it, such as "snippet" or "run"
	setup    string            // from the "setup" comments of the page so far
	end      int               // line of the closing fence
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	fence  = regexp.MustCompile("^( *)(```+|~~~+) *([^ `]*)")
	note   = regexp.MustCompile(`^\s*<!-- (\w+)(?:: *(.*?))? *-->\s*$`)
	item   = regexp.MustCompile(`^ *([*+-]|\d+[.)]) `)
	rubric = regexp.MustCompile(`(?s)<!-- (setup): *(.*?)-->`)
)

// blocks finds the code blocks of a page. Text that looks like a code block to a reader, but not to
// this function, is a mistake.
func blocks(page, text string) (found []block, mistakes []error) {
	lines := strings.Split(text, "\n")
	notes := map[string]string{}
	inList := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		open := fence.FindStringSubmatch(line)
		if open == nil {
			if m := note.FindStringSubmatch(line); m != nil {
				notes[m[1]] = m[2]
				continue
			}
			clear(notes)
			switch {
			case item.MatchString(line):
				inList = true
			case line != "" && line[0] != ' ':
				inList = false
			case strings.HasPrefix(line, "    ") && !inList && (i == 0 || lines[i-1] == ""):
				mistakes = append(mistakes, fmt.Errorf("%s:%d: an indented code block: put ``` and its language around it", page, i+1))
				for i+1 < len(lines) && (lines[i+1] == "" || strings.HasPrefix(lines[i+1], "    ")) {
					i++
				}
			}
			continue
		}
		b := block{page: page, line: i + 2, language: open[3], notes: notes}
		notes = map[string]string{}
		for _, m := range rubric.FindAllStringSubmatch(strings.Join(lines[:i], "\n"), -1) {
			b.setup += m[2] + "\n"
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != open[2]; i++ {
			b.text += strings.TrimPrefix(lines[i], open[1]) + "\n"
		}
		b.end = i + 1
		if i == len(lines) {
			mistakes = append(mistakes, fmt.Errorf("%v: the block has no end", b))
		}
		found = append(found, b)
	}
	return found, mistakes
}
