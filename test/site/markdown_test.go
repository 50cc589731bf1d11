package site_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The forms of links in our Markdown: inline, a definition, and HTML.
var (
	inlineLink  = regexp.MustCompile(`\]\(\s*<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)?)>?(?:\s+"[^"]*")?\s*\)`)
	defined     = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+".*")?$`)
	htmlLink    = regexp.MustCompile(`<[a-z]+\s[^>]*?(?:href|src|srcset)="([^"]+)"`)
	htmlAnchor  = regexp.MustCompile(`<[a-z]+\s[^>]*?(?:id|name)="([^"]+)"`)
	anyHeading  = regexp.MustCompile(`(?m)^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*$`)
	linkText    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)
	lineAnchor  = regexp.MustCompile(`^L\d+(-L\d+)?$`)
)

// checkMarkdown returns the broken links of all Markdown files of the repository, as file:line:
// what.
func checkMarkdown(repo fs.FS) []string {
	var problems []string
	files, err := markdownFiles(repo)
	if err != nil {
		return []string{err.Error()}
	}
	for _, file := range files {
		text, err := fs.ReadFile(repo, file)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		prose := withoutSpans(withoutBlocks(string(text)))
		for _, form := range []*regexp.Regexp{inlineLink, defined, htmlLink} {
			for _, at := range form.FindAllStringSubmatchIndex(prose, -1) {
				link := prose[at[2]:at[3]]
				if err := checkLink(repo, file, link); err != nil {
					line := 1 + strings.Count(prose[:at[2]], "\n")
					problems = append(problems, fmt.Sprintf("%s:%d: %s: %v", file, line, link, err))
				}
			}
		}
	}
	return problems
}

// markdownFiles excludes third-party and untracked files.
func markdownFiles(repo fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(repo, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"node_modules", "dist", "bin", "testdata"}, base)) {
			return fs.SkipDir
		}
		if !entry.IsDir() && path.Ext(base) == ".md" {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func checkLink(repo fs.FS, file, link string) error {
	target, err := url.Parse(link)
	if err != nil {
		return err
	}
	if target.Scheme != "" || target.Host != "" {
		return checkOutside(target, repo)
	}
	if path.IsAbs(target.Path) {
		return errors.New("is not relative to the file")
	}
	name := file
	if target.Path != "" {
		name = path.Join(path.Dir(file), target.Path)
	}
	info, err := fs.Stat(repo, name)
	if err != nil {
		return errors.New("there is no such file")
	}
	if target.Fragment == "" {
		return nil
	}
	if info.IsDir() {
		name = path.Join(name, "README.md")
	}
	if path.Ext(name) != ".md" {
		if lineAnchor.MatchString(target.Fragment) {
			return nil
		}
		return errors.New("only Markdown has sections")
	}
	text, err := fs.ReadFile(repo, name)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(string(text)), target.Fragment) {
		return fmt.Errorf("%s has no section #%s", name, target.Fragment)
	}
	return nil
}

// anchors returns the anchors that GitHub generates for the headings of a text, and explicit ones.
func anchors(text string) []string {
	var names []string
	seen := map[string]int{}
	text = withoutBlocks(text)
	for _, heading := range anyHeading.FindAllStringSubmatch(text, -1) {
		name := linkText.ReplaceAllString(heading[1], "$1")
		name = notInAnchor.ReplaceAllString(strings.ToLower(name), "")
		name = strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
		n := seen[name]
		seen[name]++
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		names = append(names, name)
	}
	for _, anchor := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		names = append(names, anchor[1])
	}
	return names
}

// withoutBlocks empties fenced and indented code; the lines stay, so that line numbers are right.
func withoutBlocks(text string) string {
	lines := strings.Split(text, "\n")
	fence, indented, blankBefore, inList := "", false, true, false
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		blank := strings.TrimSpace(line) == ""
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" ") == "" {
				fence = ""
			}
			lines[i] = ""
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
			lines[i] = ""
		case !blank && indent >= 4 && !inList && (blankBefore || indented):
			indented = true
			lines[i] = ""
		case !blank:
			indented = false
			if indent == 0 {
				inList = listItem.MatchString(line)
			}
		}
		blankBefore = blank
	}
	return strings.Join(lines, "\n")
}

var listItem = regexp.MustCompile(`^([-*+]|\d+[.)]) `)

// withoutSpans empties code spans; a span ends with as many backticks as it began with, in the same
// paragraph.
func withoutSpans(text string) string {
	out := []byte(text)
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			continue
		}
		n := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		end := closing(text[i+n:], n)
		if end < 0 {
			i += n - 1
			continue
		}
		for k := i; k < i+n+end; k++ {
			if out[k] != '\n' {
				out[k] = ' '
			}
		}
		i += n + end - 1
	}
	return string(out)
}

// closing returns where the next run of exactly n backticks ends, or -1.
func closing(text string, n int) int {
	paragraph, _, _ := strings.Cut(text, "\n\n")
	for i := 0; i < len(paragraph); {
		run := len(paragraph[i:]) - len(strings.TrimLeft(paragraph[i:], "`"))
		if run == n {
			return i + run
		}
		i += max(run, 1)
	}
	return -1
}
