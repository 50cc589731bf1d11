// Package consumer processes messages with the product's own consumers and its inbox: one effect in
// the database for each message. The HTTP receiver is also the destination of its messages and
// records their receipt.
package consumer
