package main

// What is told about an application. postrider.yaml says which job each of these means.
const (
	documentUploaded     = "document_uploaded"
	applicationSubmitted = "application_submitted"
	paymentCompleted     = "payment_completed"
)

// about is the payload of these messages: what has happened to which application. The rest is in the database.
type about struct {
	ApplicationID string   `json:"applicationId"`
	FileIDs       []string `json:"applicationFileIds,omitempty"` // of documentUploaded: all of the application's documents
}
