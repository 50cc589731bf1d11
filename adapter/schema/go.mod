module github.com/postrider/postrider/adapter/schema

go 1.26.0

require (
	github.com/postrider/postrider v0.1.0
	github.com/twmb/avro v1.9.0
	google.golang.org/protobuf v1.36.12
)

require github.com/klauspost/compress v1.20.3 // indirect
