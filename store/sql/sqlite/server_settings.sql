SELECT 'synchronous', synchronous FROM pragma_synchronous
