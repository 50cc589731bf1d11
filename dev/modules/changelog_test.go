package main

import "testing"

func TestReleased(t *testing.T) {
	t.Parallel()
	const (
		fresh = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A door.\n"
		first = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-19\n\n### Added\n\n- A door.\n"
		later = "# Changelog\n\n## [Unreleased]\n\n- A window.\n\n## [0.1.0] - 2026-11-19\n\n### Added\n\n- A door.\n"
	)
	for name, c := range map[string]struct{ text, version, want string }{
		"the first":          {fresh, "v0.1.0", first},
		"again":              {first, "v0.1.0", first},
		"nothing since":      {first, "v0.2.0", ""},
		"not one by prefix":  {first, "v0.1", ""},
		"something since":    {later, "v0.2.0", "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-19\n\n- A window.\n\n## [0.1.0] - 2026-11-19\n\n### Added\n\n- A door.\n"},
		"no section at all":  {"# Changelog\n", "v0.1.0", ""},
		"begins with itself": {"## [0.1.0] - 2026-11-19\n", "v0.1.0", "## [0.1.0] - 2026-11-19\n"},
	} {
		got, err := released(c.text, c.version, "2026-11-19")
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
