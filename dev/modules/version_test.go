package main

import "testing"

func TestVersions(t *testing.T) {
	t.Parallel()
	// In the order of semver.org.
	ordered := []string{
		"v0.0.9", "v0.1.0-0", "v0.1.0-9", "v0.1.0-10", "v0.1.0-alpha", "v0.1.0-alpha.1", "v0.1.0-alpha.beta", "v0.1.0-rc.2", "v0.1.0-rc.10",
		"v0.1.0", "v0.1.1", "v0.2.0", "v0.10.0", "v1.0.0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			v, err := parseVersion(a)
			if err != nil {
				t.Fatal(err)
			}
			w, err := parseVersion(b)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.compare(w); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
	for _, wrong := range []string{"", "0.1.0", "v0.1", "v01.0.0", "v0.1.0-", "v0.1.0-01", "v0.1.0-a..b", "v0.1.0+build", "v0.1.0 ", "v1.2.3.4", "latest"} {
		if _, err := parseVersion(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func TestFollowing(t *testing.T) {
	t.Parallel()
	tags := []string{"v0.9.0", "v0.10.0", "vendor"}
	for next, ok := range map[string]bool{
		"v0.10.0": false, "v0.9.1": false, "v0.10.0-rc.1": false, "v0.10.1": true, "v0.11.0-rc.1": true, "v1.0.0": true, "v2.0.0": false, "next": false,
	} {
		if err := following(next, tags); (err == nil) != ok {
			t.Errorf("%s: %v", next, err)
		}
	}
	if err := following("v0.1.0", nil); err != nil {
		t.Errorf("the first release: %v", err)
	}
}
