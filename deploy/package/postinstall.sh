#!/bin/sh
# An installation starts nothing, because the configuration must be filled in first. An upgrade
# restarts a running relay as the new version; the old process releases its shards, so no message is
# lost.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1" in
configure) [ -z "$2" ] || systemctl try-restart postrider.service ;; # deb, $2: the previous version
2) systemctl try-restart postrider.service ;;                       # rpm, an upgrade
esac
