package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// pages serves the files of the browser application. Every other path is a page of the application,
// and gets its index file.
type pages struct {
	files map[string]file
	index file
}

type file struct {
	kind  string
	cache string
	plain variant
	gzip  *variant
}

type variant struct {
	content []byte
	tag     string
}

const (
	forEver = "public, max-age=31536000, immutable" // the file name changes with the content
	askEach = "no-cache"
)

// baseTag matches the tag that sets the base of relative addresses.
var baseTag = regexp.MustCompile(`(?i)<base\b[^>]*>`)

func newPages(from fs.FS, prefix string) (*pages, error) {
	p := &pages{files: make(map[string]file)}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		f := file{kind: mime.TypeByExtension(path.Ext(name)), cache: askEach, plain: newVariant(content)}
		if f.kind == "" {
			f.kind = "application/octet-stream"
		}
		if strings.HasPrefix(name, "assets/") {
			f.cache = forEver
		}
		if packed := pack(content); len(packed) < len(content) {
			v := newVariant(packed)
			f.gzip = &v
		}
		p.files[name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: pages: %w", err)
	}
	index, ok := p.files["index.html"]
	if !ok {
		return nil, fmt.Errorf("console: pages: there is no index.html; build it with npm run build in admin/console/web")
	}
	index.plain, index.gzip = newVariant(withBase(index.plain.content, prefix+"/")), nil
	p.index = index
	delete(p.files, "index.html")
	return p, nil
}

// pack compresses a file once, for all requests.
func pack(content []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                                    // a buffer never fails
	_ = w.Close()
	return packed.Bytes()
}

// withBase sets the base address of a page.
func withBase(page []byte, href string) []byte {
	tag := []byte(`<base href="` + html.EscapeString(href) + `" />`)
	if baseTag.Match(page) {
		return baseTag.ReplaceAllLiteral(page, tag)
	}
	return bytes.Replace(page, []byte("<head>"), append([]byte("<head>"), tag...), 1)
}

func newVariant(content []byte) variant {
	sum := sha256.Sum256(content)
	return variant{content, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	f, ok := p.files[name]
	if !ok {
		if strings.HasPrefix(name, "assets/") { // an asset of an older version: the browser would run the index page as a script
			http.NotFound(w, r)
			return
		}
		f = p.index
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	v := f.plain
	if f.gzip != nil {
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			v = *f.gzip
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", v.tag)
	if matches(r.Header.Get("If-None-Match"), v.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(v.content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(v.content) // the client may have disconnected
	}
}

func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == tag || part == "*" {
			return true
		}
	}
	return false
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(coding) == "gzip" {
			q := strings.TrimSpace(quality)
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
}
