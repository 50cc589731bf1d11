package main

// What is told about an application. postrider.yaml says which job each of these means.
const (
	documentUploaded     = "document_uploaded"
	applicationSubmitted = "application_submitted"
	paymentCompleted     = "payment_completed"
)

// about is the payload of these messages: what has happened to which application. The rest is in the database.
type about struct {
	Application string `json:"application"`
	Document    string `json:"document,omitempty"` // of documentUploaded
}
