module github.com/postrider/postrider/adapter/enttx

go 1.26.0

require entgo.io/ent v0.14.5

require github.com/google/uuid v1.3.0 // indirect
