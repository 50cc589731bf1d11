package rule

import (
	"go/ast"
	"slices"
	"strings"
)

// The rules of this file leave out what only people read, and only in logs and messages. Nothing is
// left out by name.

// isText reports whether a function makes a text for people.
func isText(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"String", "GoString", "LogValue", "Error"}, d.Name.Name)
}

var logMethods = []string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs"}

// isLog reports whether a call writes a line of a log: a method of one of slog's names, of something
// whose own name ends with log.
func isLog(c *ast.CallExpr) bool {
	method, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(logMethods, strings.TrimSuffix(method.Sel.Name, "Context")) {
		return false
	}
	of := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	case *ast.CallExpr: // such as r.log().Warn
		if s, ok := x.Fun.(*ast.SelectorExpr); ok {
			of = s.Sel.Name
		}
	}
	of = strings.ToLower(of)
	return strings.HasSuffix(of, "log") || strings.HasSuffix(of, "logger")
}

// onlyLogs reports whether an if does nothing but log.
func onlyLogs(n *ast.IfStmt) bool {
	if n.Else != nil || n.Init != nil || len(n.Body.List) == 0 {
		return false
	}
	return !slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return true
		}
		c, ok := e.X.(*ast.CallExpr)
		return !ok || !isLog(c)
	})
}
