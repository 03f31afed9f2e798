from posse.cli.main import main

main()
