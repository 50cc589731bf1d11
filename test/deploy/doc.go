// Package deploy tests the release artifacts: archives, packages, the Homebrew formula, the
// container's image and root file system, the systemd unit, the compose file and the Helm chart; and
// the files that GitHub and development containers read. After a change to the chart, "make chart"
// renders it again.
package deploy
