package redact

import "strings"

// Hidden replaces the value of a header that the role may not see.
const Hidden = "[hidden]"

// secretNames are parts of the names of headers that carry secrets, without word separators.
var secretNames = []string{
	"authorization", "cookie", "token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "credential",
}

var joints = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// Headers returns headers for display. If visible is false, all values are hidden. Values of
// headers with secret-looking names are always masked.
func (r *Rules) Headers(headers map[string]string, visible bool) map[string]string {
	shown := make(map[string]string, len(headers))
	for name, value := range headers {
		switch {
		case secretName(name):
			value = Mask
		case !visible:
			value = Hidden
		}
		shown[name] = value
	}
	return shown
}

func secretName(name string) bool {
	name = joints.Replace(strings.ToLower(name))
	for _, part := range secretNames {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
