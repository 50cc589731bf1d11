// Package deploy tests the release artifacts: archives, packages, the container's root file system,
// the systemd unit, the compose file and the Helm chart. After a change to the chart, "make chart"
// renders it again.
package deploy
