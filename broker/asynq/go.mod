module github.com/postrider/postrider/broker/asynq

go 1.26

require github.com/postrider/postrider v0.0.0

replace github.com/postrider/postrider => ../..
