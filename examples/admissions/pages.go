package main

import (
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
)

//go:embed pages
var pages embed.FS

var (
	formTemplate   = template.Must(template.ParseFS(pages, "pages/layout.html", "pages/form.html"))
	statusTemplate = template.Must(template.ParseFS(pages, "pages/layout.html", "pages/status.html"))
	assets         = http.StripPrefix("/assets/", http.FileServerFS(subFolder(pages, "pages/assets")))
)

func subFolder(all fs.FS, folder string) fs.FS {
	sub, err := fs.Sub(all, folder)
	if err != nil {
		panic(err) // cannot happen: it is embedded
	}
	return sub
}

// withSafeHeaders lets pages load resources from this server only. The address of an application is
// its applicant's secret, so the headers keep it from other sites and from caches.
func withSafeHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

type programme struct{ ID, Title string }

func (s *service) formPage(w http.ResponseWriter, r *http.Request) {
	rows, _ := s.pool.Query(r.Context(), "SELECT id, title FROM admissions.programmes ORDER BY title")
	programmes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[programme])
	if err != nil {
		slog.Error("programmes not read", "err", err)
		http.Error(w, "The service cannot reach its database. Try again in a moment.", http.StatusServiceUnavailable)
		return
	}
	show(w, formTemplate, programmes)
}

func show(w http.ResponseWriter, page *template.Template, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.ExecuteTemplate(w, "layout.html", data); err != nil {
		slog.Warn("page not sent", "err", err)
	}
}
