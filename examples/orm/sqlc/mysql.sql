-- name: InsertOrder :exec
INSERT INTO orders (id, item) VALUES (?, ?);
