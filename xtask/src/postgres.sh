# Starts a PostgreSQL server in a folder of its own, says where it is once it answers, and ends both when its
# input ends, which is when whoever started this is gone, however it went. $1: the folder of its programs.
set -e
folder=$(mktemp -d "${TMPDIR:-/tmp}/lodestar-postgres.XXXXXX")
end() {
    if [ -n "$server" ]; then kill -QUIT "$server"; wait "$server" || true; fi
    rm -rf "$folder"
}
trap end EXIT
"$1/initdb" --pgdata="$folder/data" --username=lodestar --auth=trust --encoding=UTF8 \
    --no-locale --no-sync >"$folder/initdb.log" 2>&1
"$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off \
    -c max_connections=40 >"$folder/log" 2>&1 </dev/null &
server=$!
tries=0
until "$1/pg_isready" -q -h "$folder"; do
    if [ "$tries" -ge 600 ]; then exit 1; fi
    tries=$((tries + 1))
    sleep 0.1
done
echo "$folder"
cat >/dev/null
