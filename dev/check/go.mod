// What make check runs. A module of its own, so that nothing of it is in the archive of the core.
module github.com/postrider/postrider/dev/check

go 1.26.0
