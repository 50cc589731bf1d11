package site_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// expect reports expected problems that were not found, and unexpected ones.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
			t.Errorf("not noticed: %s", w)
		}
	}
	for _, g := range got {
		if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(g, w) }) {
			t.Errorf("false alarm: %s", g)
		}
	}
}

func TestPlantedMarkdown(t *testing.T) {
	repo := fstest.MapFS{
		"README.md": file("# Top\n\n[fine](docs/a.md#first--second-part) [folder](docs#about) ![none](docs/none.png)\n\n" +
			"`[code](nowhere.md)` and ``a ` [code](nowhere.md)``\n\n    [block](nowhere.md)\n\n```text\n[block](nowhere.md)\n# Not a heading\n```\n\n" +
			"- item\n\n    [in an item](lost.md)\n\n[here](#top) [gone](#not-a-heading) [twice](docs/a.md#again-1) [thrice](docs/a.md#again-2)\n" +
			"[plain](http://example.com/) [mine](http://127.0.0.1:8711/) [bad](https://example) [ref]\n\n[ref]: missing.md\n"),
		"docs/README.md":         file("# About\n[line](../main.go#L3) [no](../main.go#main) <img src=\"gone.svg\">\n"),
		"docs/a.md":              file("# First & second *part*\n## Again\n## Again\n[up](../../outside.md)\n[ours](https://github.com/postrider/postrider/blob/main/gone.go)"),
		"main.go":                file("package main\n"),
		"node_modules/x/READ.md": file("[not ours](x)"),
	}
	expect(t, checkMarkdown(repo),
		"README.md:3: docs/none.png", "README.md:16: lost.md", "README.md:18: #not-a-heading", "README.md:18: docs/a.md#again-2",
		"README.md:19: http://example.com/", "README.md:19: https://example:", "README.md:21: missing.md",
		"docs/README.md:2: ../main.go#main", "docs/README.md:2: gone.svg", "docs/a.md:4: ../../outside.md", "docs/a.md:5: https://github.com")
}

func TestPlantedSite(t *testing.T) {
	built := fstest.MapFS{
		"index.html": file(`<title>Site</title><link rel=stylesheet href="a.css"><script src="a.js"></script><nav id=menu><a href="./sub/b.html">b</a></nav>
			<h1 id=top>Site</h1><a href="sub/b.html#there">fine</a><a href="sub/b.html#gone">broken</a><a href="none.html">none</a>
			<img src="https://cdn.example.com/x.png" alt=""><a href="https://example.com/">out</a><a href="/sub/b.html">absolute</a>`),
		"sub/b.html":      file(`<title>B</title><h1 id=there>B</h1><a href="../index.html#top">up</a><img src="../pic.png" srcset="none.png 2x"><p id=there>`),
		"lonely.html":     file(`<title></title><h1>Alone</h1><p style="background: url(//fonts.example.com/x)">`),
		"large.html":      file(`<title>Large</title><h1>Large</h1>` + strings.Repeat("x", largestPage)),
		"a.css":           file(`@import "https://fonts.example.com/f.css"; p { background: url(pic.png) }`),
		"a.js":            file(`fetch("https://api.example.com/")`),
		"search-index.js": file(`searchIndex([{"text":"see 'https://example.com'"}])`),
		"pic.png":         file("png"),
	}
	expect(t, checkSite(built, fstest.MapFS{}),
		"index.html: sub/b.html#gone", "index.html: none.html", "index.html: https://cdn.example.com/x.png", "index.html: /sub/b.html",
		"sub/b.html: none.png", "sub/b.html: a picture has no text", "sub/b.html: two elements are named there",
		"lonely.html: has no title", "lonely.html: the navigation", "lonely.html: //fonts.example.com/x",
		"large.html: has", "large.html: the navigation", "a.css: https://fonts.example.com", "a.js: names another host")
}
