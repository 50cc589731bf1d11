module github.com/postrider/postrider

go 1.26.0
