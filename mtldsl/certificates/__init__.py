"""What is proven about a point: bounds, multipliers, first-order conditions; and the small independent checker of a saved proof."""
