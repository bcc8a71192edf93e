#!/bin/sh
# Makes the folder that filesystem.ops.json works in, anew: filesystem.scratch.sh FOLDER
set -eu
rm -rf "$1"
mkdir -p "$1"
printf '%s' 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' |
    base64 -d > "$1/pixel.png"
# Leads out of the folder that the server may touch.
ln -s /etc/hostname "$1/way-out"
