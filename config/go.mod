module github.com/postrider/postrider/config

go 1.26.0

require github.com/postrider/postrider v0.0.0

require go.yaml.in/yaml/v3 v3.0.6

replace github.com/postrider/postrider => ../
