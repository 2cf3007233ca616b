"""Forms made easier, and the way back."""
