test "$(tar -tzf /backup/logs.tar.gz | grep -c '\.log$')" = 3
