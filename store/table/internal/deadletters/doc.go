// Package deadletters is the operator's side of inboxes on MySQL: what consumers have deferred.
package deadletters
