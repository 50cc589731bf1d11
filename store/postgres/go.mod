module github.com/postrider/postrider/store/postgres

go 1.26

require (
	github.com/jackc/pgx/v5 v5.11.0
	github.com/postrider/postrider v0.0.0
)

replace github.com/postrider/postrider => ../..
