module github.com/postrider/postrider/admin/console

go 1.26.0

require (
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/danielgtaylor/huma/v2 v2.37.2
	github.com/go-jose/go-jose/v4 v4.1.7
	github.com/jackc/pgx/v5 v5.12.0
	github.com/postrider/postrider v0.1.0
	github.com/postrider/postrider/store/postgres v0.1.0
	golang.org/x/oauth2 v0.37.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
