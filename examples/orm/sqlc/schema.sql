CREATE TABLE orders (id varchar(36) PRIMARY KEY, item varchar(100) NOT NULL);
