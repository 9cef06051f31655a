"""Two further systems that studies simulate on the same engines."""
