#!/bin/sh
# A program that is removed must not leave a service that fails. An upgrade stops nothing here.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl disable --now postrider.service ;;
esac
