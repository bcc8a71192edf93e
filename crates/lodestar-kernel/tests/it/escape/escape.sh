#!/bin/bash
# Tries the ways out of a cell that a shell has, and those that it was granted; see escape.c.

say() {
    local name=$1 code
    shift
    # In a shell of its own: a redirection that fails ends no more than that.
    ( "$@" ) >/dev/null 2>&1 </dev/null
    code=$?
    if [ $code -eq 0 ]; then echo "$name did 0"; else echo "$name refused $code"; fi
}

append() { echo escaped >>"$1"; }
make() { [ ! -e "$1" ] && echo escaped >"$1"; }
by_link() { ln "${@:3}" "$2" "$TMPDIR/sh-link" && "$1" "$TMPDIR/sh-link"; local code=$?; rm -f "$TMPDIR/sh-link"; return $code; }
connect() { exec 9<>"/dev/$1/127.0.0.1/$2"; }
send() { echo escaped >"/dev/udp/127.0.0.1/$1"; }
mounted() { mkdir -p "$TMPDIR/sh-mount" && mount "$@" "$TMPDIR/sh-mount" && umount "$TMPDIR/sh-mount"; }
other_user() { [ "$("$E_SUID" -u || id -u)" != "$(id -u)" ]; }
commit() {
    cd "$E_PROJECT" && echo change >>src/b.txt && git add src/b.txt && git -c core.hooksPath=/dev/null commit -qm change
}

say read_project cat "$E_PROJECT/src/a.txt"
say list_project ls "$E_PROJECT"
say read_system cat /etc/passwd
say exec_system /usr/bin/true
say exec_own "$E_PROJECT/own.sh"
say write_null append /dev/null
say write_tmp make "$TMPDIR/sh-new"
say write_old append "$E_PROJECT/README"
say write_top make "$E_PROJECT/sh-new"
say write_sub make "$E_PROJECT/src/sh-new"
say mkdir_sub mkdir "$E_PROJECT/src/sh-folder"
say rename_sub mv "$E_PROJECT/src/sh-folder" "$E_PROJECT/src/sh-moved"
say pipe eval 'echo one | cat | grep one'
say python3 /usr/bin/python3 -c 'import json, ssl, sqlite3, subprocess; subprocess.run(["true"], check=True)'
say node node -e 'require("child_process").execFileSync("true")'
say git_reads git -C "$E_PROJECT" status --short
say git_commits commit
say stdout_by_name eval 'echo one > /dev/stdout'

say read_key cat "$E_KEY"
say list_keys ls "$E_KEYS"
say list_lodestar ls "$E_PROJECT/.lodestar"
say stat_read_lodestar cat "$E_PROJECT/.lodestar/state.db"
say append_lodestar append "$E_PROJECT/.lodestar/state.db"
say write_lodestar make "$E_PROJECT/.lodestar/sh-new"
say read_outside cat "$E_OUTSIDE/secret"
say write_outside make "$E_OUTSIDE/sh-new"
say append_outside append "$E_OUTSIDE/secret"
say remove_outside rm "$E_OUTSIDE/sh-prey"
say chmod_outside chmod 666 "$E_OUTSIDE/secret"
say chmod_key chmod 644 "$E_KEY"
say utime_outside touch "$E_OUTSIDE/secret"
say read_client cat "$E_PROJECT/.mcp.json"
say write_client append "$E_PROJECT/.mcp.json"
say replace_client mv -f "$E_PROJECT/src/b.txt" "$E_PROJECT/.mcp.json"
say read_credentials cat "$HOME/.config/git/credentials"
say read_home_secret cat "$HOME/.ssh/id"
say write_home make "$HOME/sh-new"
say read_key_by_symlink by_link cat "$E_KEY" -s
say write_outside_by_symlink by_link append "$E_OUTSIDE/secret" -s
say read_key_by_hard_link by_link cat "$E_KEY"
say write_hook_by_hard_link by_link append "$E_PROJECT/.git/hooks/pre-commit"
say write_hook append "$E_PROJECT/.git/hooks/pre-commit"
say make_hook make "$E_PROJECT/.git/hooks/post-commit"
say write_git_config git -C "$E_PROJECT" config core.fsmonitor escaped
say move_git mv "$E_PROJECT/.git" "$E_PROJECT/src/sh-git"
say move_claude mv "$E_PROJECT/.claude" "$E_PROJECT/src/sh-claude"
say write_settings append "$E_PROJECT/.claude/settings.json"
say self_root_key cat "/proc/self/root$E_KEY"
say self_cwd_lodestar cat /proc/self/cwd/.lodestar/state.db

say parent_root cat "/proc/$E_PARENT/root/etc/passwd"
say parent_cwd ls "/proc/$E_PARENT/cwd/"
say parent_environ cat "/proc/$E_PARENT/environ"
say parent_maps cat "/proc/$E_PARENT/maps"
say parent_fd readlink "/proc/$E_PARENT/fd/$E_FD"
say parent_fd_numbers ls "/proc/$E_PARENT/fd"
say parent_open_fd cat "/proc/$E_PARENT/fd/$E_FD"
say inherited_descriptor eval "cat <&$E_FD"
say signal kill -URG "$E_PARENT"
say signal_nothing kill -0 "$E_PARENT"
say limits_set prlimit --pid "$E_PARENT" --core=0:0

say tcp4 connect tcp "$E_TCP4"
say tcp_port connect tcp "$E_TCP_PORT"
say udp4 send "$E_UDP4"
say proxy_variable /usr/bin/python3 -c 'import urllib.request as u; u.urlopen("http://example.invalid/escaped", timeout=3).read()'
say mount_bind mounted --bind "$E_OUTSIDE"
say mount_tmpfs mounted -t tmpfs tmpfs
say unshare_user unshare --user --map-root-user true
say unshare_mount unshare --mount true
say chroot chroot "$E_OUTSIDE" /secret-program
say setns nsenter --target "$E_PARENT" --mount true
say setsid setsid --fork --wait true
say setuid_program other_user
say plant_gemini eval "mkdir '$E_PROJECT/.gemini' && echo escaped >'$E_PROJECT/.gemini/settings.json'"
say plant_commondir make "$E_PROJECT/.git/commondir"
