// Package deploy tests what Postrider is delivered in: archives, packages, the container's root folder, the unit of systemd,
// the compose file and the Helm chart. "make chart" renders the chart again after a change.
package deploy
