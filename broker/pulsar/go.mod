module github.com/postrider/postrider/broker/pulsar

go 1.26

require github.com/postrider/postrider v0.0.0

replace github.com/postrider/postrider => ../..
