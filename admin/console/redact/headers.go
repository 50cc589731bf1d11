package redact

import "strings"

// Hidden stands in the place of the value of a header that the role may not see.
const Hidden = "[hidden]"

// secretNames are parts of the names of headers that carry secrets, without what joins words.
var secretNames = []string{
	"authorization", "cookie", "token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "credential",
}

var joints = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// Headers returns headers as they are shown to somebody who may see their values, or may not. The values of headers whose
// names say that they are secret are shown to nobody.
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
