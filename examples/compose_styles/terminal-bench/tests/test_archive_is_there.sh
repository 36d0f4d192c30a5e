test -s /backup/logs.tar.gz
