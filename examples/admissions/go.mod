module github.com/postrider/postrider/examples/admissions

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/postrider/postrider v0.0.0
	github.com/postrider/postrider/broker/asynq v0.0.0
	github.com/postrider/postrider/broker/nats v0.0.0
	github.com/postrider/postrider/broker/rabbitmq v0.0.0
	github.com/postrider/postrider/store/postgres v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hibiken/asynq v0.26.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.0 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/postrider/postrider/broker/redis v0.0.0 // indirect
	github.com/rabbitmq/amqp091-go v1.16.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/protobuf v1.36.10 // indirect
)

replace (
	github.com/postrider/postrider => ../..
	github.com/postrider/postrider/broker/asynq => ../../broker/asynq
	github.com/postrider/postrider/broker/nats => ../../broker/nats
	github.com/postrider/postrider/broker/rabbitmq => ../../broker/rabbitmq
	github.com/postrider/postrider/broker/redis => ../../broker/redis
	github.com/postrider/postrider/store/postgres => ../../store/postgres
)
