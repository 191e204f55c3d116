//! Measures tables on disk beside other embedded stores.
//!
//! Every engine has the same memory, the same data, no compression, and the same durability in a
//! row. Each group of rows is measured in a process of its own, and the engines take turns; see
//! `results` for the statistics.

mod bench;
mod child;
mod data;
mod engine;
mod group;
mod machine;
mod options;
mod results;
mod row;
mod system;

use bench::Bench;
use child::{CHILD, Task};
use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == CHILD).is_some() {
        return exit_code(Task::parse(arguments).and_then(|task| group::run(&task)));
    }
    exit_code(measure(Options::of_process()))
}

fn measure(options: Options) -> engine::Outcome<()> {
    std::fs::create_dir_all(&options.data)?;
    let facts = machine::facts(&options);
    println!("Tables on disk beside other stores\n");
    for (name, value) in &facts {
        println!("- {name}: {value}");
    }
    println!();
    let mut bench = Bench::new(options);
    bench.run()?;
    print!("{}", bench.report());
    println!("written to {}", bench.write(&facts)?.display());
    if bench.has_failed() {
        Err("not everything was measured".into())
    } else {
        Ok(())
    }
}

fn exit_code(outcome: engine::Outcome<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
