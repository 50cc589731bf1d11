package main

import (
	"regexp"
	"strings"
)

// chart is the description of the Helm chart. Its appVersion is the tag of the image that the
// chart pulls, so each release must have its own.
const chart = "deploy/helm/postrider/Chart.yaml"

var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// charted returns the description of the chart with a version.
func charted(text, version string) string {
	return chartVersions.ReplaceAllString(text, "${1}: "+strings.TrimPrefix(version, "v"))
}
