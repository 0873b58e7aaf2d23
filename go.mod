module github.com/standbyd/standbyd

go 1.26
