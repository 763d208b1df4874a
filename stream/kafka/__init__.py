"""The learner on Kafka: a real broker for tests and for trying out, its topics, its clients, and the service."""
