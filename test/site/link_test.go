package site_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path"
	"strings"
)

const repository = "https://github.com/postrider/postrider/"

// checkOutside checks a link to another host as far as possible without a network: it must use
// https, unless it leads to the reader's own machine, and files of our own repository must exist.
func checkOutside(link *url.URL, repo fs.FS) error {
	if link.Scheme == "mailto" {
		return nil
	}
	host := link.Hostname()
	ip := net.ParseIP(host)
	switch {
	case host == "localhost", ip != nil && ip.IsLoopback():
		return nil
	case link.Scheme != "https":
		return errors.New("is not https")
	case !strings.Contains(strings.Trim(host, "."), ".") || strings.ContainsAny(host, " _<>"):
		return fmt.Errorf("%q is not the name of a host", host)
	}
	rest, ours := strings.CutPrefix(link.String(), repository)
	if !ours {
		return nil
	}
	// blob/main/docs/console.md#who: the path follows the branch.
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 || parts[0] != "blob" && parts[0] != "tree" && parts[0] != "edit" {
		return nil
	}
	file, _, _ := strings.Cut(parts[2], "#")
	if _, err := fs.Stat(repo, path.Clean(file)); err != nil {
		return fmt.Errorf("the repository has no %s", file)
	}
	return nil
}
