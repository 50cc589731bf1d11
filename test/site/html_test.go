package site_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// page has what the checks need of one page.
type page struct {
	title, h1 string
	anchors   map[string]bool
	links     []string // that a reader may follow
	loads     []string // that a browser fetches by itself
	menu      []string // the links of the navigation
	problems  []string
}

const largestPage = 1 << 20

// Of a style sheet: what it loads. Of a script: addresses of other hosts.
var (
	cssLoads  = regexp.MustCompile(`(?:url\(\s*["']?|@import\s+["'])([^"')]+)`)
	otherHost = regexp.MustCompile(`["'` + "`" + `](?:https?:)?//[^"'\s]+`)
)

// checkSite returns the problems of a built site: broken links and anchors, requests to other
// hosts, and pages that the navigation does not reach, that have no title or that are too large.
func checkSite(site, repo fs.FS) []string {
	var problems []string
	report := func(file, format string, args ...any) {
		problems = append(problems, file+": "+fmt.Sprintf(format, args...))
	}
	pages := map[string]page{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".html":
			if len(text) > largestPage {
				report(name, "has %d bytes, at most %d are allowed", len(text), largestPage)
			}
			pages[name], err = read(text)
		case ".css":
			for _, load := range cssLoads.FindAllSubmatch(text, -1) {
				if err := checkLoad(site, name, string(load[1])); err != nil {
					report(name, "%s: %v", load[1], err)
				}
			}
		case ".js":
			// The search index contains the text of the pages, including addresses in it.
			if other := otherHost.Find(text); other != nil && name != "search-index.js" {
				report(name, "names another host: %s", other)
			}
		}
		return err
	})
	if err != nil {
		return append(problems, err.Error())
	}

	reached := map[string]bool{"index.html": true, "404.html": true}
	for _, link := range pages["index.html"].menu {
		reached[resolve(site, "index.html", link)] = true
	}
	for name, page := range pages {
		for _, problem := range page.problems {
			report(name, "%s", problem)
		}
		if page.title == "" || page.h1 == "" {
			report(name, "has no title or no heading: %q, %q", page.title, page.h1)
		}
		if !reached[name] {
			report(name, "the navigation does not lead to it")
		}
		for _, load := range page.loads {
			if err := checkLoad(site, name, load); err != nil {
				report(name, "%s: %v", load, err)
			}
		}
		for _, link := range page.links {
			if err := checkPageLink(site, repo, pages, name, link); err != nil {
				report(name, "%s: %v", link, err)
			}
		}
	}
	return problems
}

// resolve returns the file of the site that a relative link in another file leads to.
func resolve(site fs.FS, from, link string) string {
	target, err := url.Parse(link)
	if err != nil || target.Path == "" {
		return from
	}
	name := path.Join(path.Dir(from), target.Path)
	if info, err := fs.Stat(site, name); err == nil && info.IsDir() {
		name = path.Join(name, "index.html")
	}
	return name
}

func checkLoad(site fs.FS, from, link string) error {
	target, err := url.Parse(link)
	switch {
	case err != nil:
		return err
	case target.Scheme == "data":
		return nil
	case target.Scheme != "" || target.Host != "":
		return errors.New("is loaded from another host")
	case path.IsAbs(target.Path):
		return errors.New("is absolute: the site works only at the top of a host")
	}
	if _, err := fs.Stat(site, resolve(site, from, link)); err != nil {
		return errors.New("there is no such file")
	}
	return nil
}

func checkPageLink(site, repo fs.FS, pages map[string]page, from, link string) error {
	target, err := url.Parse(link)
	if err != nil {
		return err
	}
	if target.Scheme != "" || target.Host != "" {
		return checkOutside(target, repo)
	}
	if err := checkLoad(site, from, link); err != nil {
		return err
	}
	name := resolve(site, from, link)
	if to, ok := pages[name]; ok && target.Fragment != "" && !to.anchors[target.Fragment] {
		return fmt.Errorf("%s has no section #%s", name, target.Fragment)
	}
	return nil
}

func read(text []byte) (page, error) {
	root, err := html.Parse(bytes.NewReader(text))
	p := page{anchors: map[string]bool{}}
	if err != nil {
		return p, err
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		p.element(n)
	}
	return p, nil
}

func (p *page) element(n *html.Node) {
	attributes := map[string]string{}
	for _, a := range n.Attr {
		attributes[a.Key] = a.Val
	}
	if id := attributes["id"]; id != "" {
		if p.anchors[id] {
			p.problems = append(p.problems, "two elements are named "+id)
		}
		p.anchors[id] = true
	}
	for _, load := range cssLoads.FindAllStringSubmatch(attributes["style"], -1) {
		p.loads = append(p.loads, load[1])
	}
	for _, candidate := range strings.Split(attributes["srcset"], ",") {
		if fields := strings.Fields(candidate); len(fields) > 0 {
			p.loads = append(p.loads, fields[0])
		}
	}
	if src, ok := attributes["src"]; ok {
		p.loads = append(p.loads, src)
	}
	href, linked := attributes["href"]
	switch n.Data {
	case "title":
		p.title = strings.TrimSpace(content(n))
	case "h1":
		p.h1 = strings.TrimSpace(content(n))
	case "style":
		for _, load := range cssLoads.FindAllStringSubmatch(content(n), -1) {
			p.loads = append(p.loads, load[1])
		}
	case "img":
		if _, ok := attributes["alt"]; !ok {
			p.problems = append(p.problems, "a picture has no text: "+attributes["src"])
		}
	case "a":
		if linked {
			p.links = append(p.links, href)
			if inMenu(n) {
				p.menu = append(p.menu, href)
			}
		}
	default:
		if linked {
			p.loads = append(p.loads, href)
		}
	}
}

func inMenu(n *html.Node) bool {
	for up := range n.Ancestors() {
		if up.Data != "nav" {
			continue
		}
		for _, a := range up.Attr {
			if a.Key == "id" && a.Val == "menu" {
				return true
			}
		}
	}
	return false
}

func content(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return text.String()
}
