#!/bin/sh
# Removing the program must not leave a failing service behind. An upgrade stops nothing here.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl disable --now postrider.service ;;
esac
